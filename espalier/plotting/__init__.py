"""Show trees and rules: as text, flowcharts, SVG and JSON columns."""
