"""The rules of kubernetes: one file for each rule or family of rules."""
