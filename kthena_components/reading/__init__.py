"""Files that anybody may have written, read within limits that are named."""
