"""Rules between the fields of a spec, independent of the backend."""
