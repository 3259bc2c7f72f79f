"""Names of the rules about prefill and decode, which refer to each other."""

KNOWN, COMPLETE, ALIKE = "kv-connector-known", "kv-halves-complete", "kv-halves-alike"
