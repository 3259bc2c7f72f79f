"""The rules of matrixinfer: one file for each rule or family of rules."""
