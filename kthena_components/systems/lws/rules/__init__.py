"""The rules of lws: one file for each rule or family of rules."""
