"""What is asked for, what is planned, what is wrong. Pure: no Pulumi, no I/O, no clock."""
