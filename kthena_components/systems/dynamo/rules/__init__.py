"""The rules of dynamo: one file for each rule or family of rules."""
