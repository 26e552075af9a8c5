// What the report's page uses of Observable Plot and of D3; esbuild leaves out the rest.
export { areaY, arrow, axisX, axisY, dot, gridX, gridY, line, link, plot, rect, ruleX, ruleY, text } from "@observablehq/plot";
export { median, quantile } from "d3-array";
export { scaleLog } from "d3-scale";
export {
  symbol,
  symbolCircle,
  symbolCross,
  symbolDiamond,
  symbolSquare,
  symbolStar,
  symbolTriangle,
  symbolWye,
} from "d3-shape";
