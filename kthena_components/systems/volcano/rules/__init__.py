"""The rules of volcano: one file for each rule or family of rules."""
