"""HTML and SVG: elements, the style sheet, charts on logarithmic axes, pictures of propnets."""
