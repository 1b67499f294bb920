"""tertium-small and tertium-base: preferences, direct assessment, distillation, packaging."""
