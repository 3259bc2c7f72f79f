"""Names of the rules about prefill and decode, which refer to each other."""
