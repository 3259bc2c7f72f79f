"""The rules of rbg: one file for each rule or family of rules."""
