"""The rules of ray: one file for each rule or family of rules."""
