"""RoleBasedGroup and RoleBasedGroupSet."""
