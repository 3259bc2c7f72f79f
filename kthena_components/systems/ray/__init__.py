"""KubeRay: RayCluster, RayService and RayJob."""
