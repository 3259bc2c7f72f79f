"""KServe: its webhooks and controllers, against our rules, runtimes and plans."""
