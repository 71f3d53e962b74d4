"""Figures and pages: charts in one style, as SVG, PNG and self-contained HTML."""
