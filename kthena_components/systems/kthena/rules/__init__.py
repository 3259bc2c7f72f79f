"""The rules of kthena: one file for each rule or family of rules."""
