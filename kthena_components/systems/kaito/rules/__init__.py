"""The rules of kaito: one file for each rule or family of rules."""
