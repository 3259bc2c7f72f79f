"""Plans: resolved servings, their facts and their manifests."""
