"""Made by scripts/generate: do not change."""
