"""The input schema of components, and the rules between its fields."""
