"""The rules of grove: one file for each rule or family of rules."""
