"""Random objects of all kinds, against the API server and webhooks."""
