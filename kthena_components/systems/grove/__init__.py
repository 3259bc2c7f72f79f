"""Grove: PodCliqueSet."""
