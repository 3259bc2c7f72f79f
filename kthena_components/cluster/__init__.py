"""What is read from a running cluster, for `doctor` and `status`. Nothing else here opens one."""
