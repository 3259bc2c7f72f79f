"""The rules of kserve: one file for each rule or family of rules."""
