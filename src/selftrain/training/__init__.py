"""Algorithm 1: teacher, annotation, selection, student, guard."""
