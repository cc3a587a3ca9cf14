"""The paper's comparison: grids of runs, tables and figures. Nothing below imports this room."""
