"""Recipe of tertium-small and tertium-base: corpus, teachers, distillation, packaging."""
