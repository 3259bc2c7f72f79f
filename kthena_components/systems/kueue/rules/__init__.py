"""The rules of kueue: one file for each rule or family of rules."""
