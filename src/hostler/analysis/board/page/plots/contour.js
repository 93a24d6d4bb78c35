// A metric over two parameters. Between numbers it is a mean weighted by closeness, in steps of colour; nothing lies between two names, so there each name has a
// strip of its own, or a cell, made of its own runs alone. Where no run is near, nothing is painted.

const ACROSS = 72, UP = 40, LEVELS = 12, FAR = 0.28;

// Fields of colour for Scatter. points: [{x, y, value}]; tone(part) is the colour of a value between the lowest, 0, and the highest, 1.
export function fields(points, axisX, axisY, tone) {
  const values = points.map((point) => point.value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const shade = (value) => tone(Math.round(((value - low) / (high - low || 1)) * LEVELS) / LEVELS);
  return (sx, sy, box) => {
    const found = [];
    const placed = points.map((point) => ({
      ...point, u: axisX.names ? null : (sx.at(point.x) - box.left) / (box.right - box.left), v: axisY.names ? null : (sy.at(point.y) - box.top) / (box.bottom - box.top),
    }));
    for (const across of cells(axisX, sx, box.left, box.right, ACROSS)) for (const up of cells(axisY, sy, box.top, box.bottom, UP)) {
      const value = estimate(placed.filter((point) => (!axisX.names || point.x === across.name) && (!axisY.names || point.y === up.name)), across, up);
      if (value) found.push({ x: across.from, y: up.from, width: across.size, height: up.size, colour: shade(value.mean), alpha: value.sure });
    }
    return found;
  };
}

// Stretches of an axis: one for each name, with a gap between them, or many of numbers.
function cells(axis, made, from, to, count) {
  if (axis.names) return axis.names.map((name) => ({ name, from: made.at(name) - made.width * 0.46, size: made.width * 0.92 }));
  const edge = (n) => Math.round(from + ((to - from) * n) / count); // whole pixels: neither seams nor gaps
  return Array.from({ length: count }, (_, n) => ({ from: edge(n), size: edge(n + 1) - edge(n), middle: (n + 0.5) / count }));
}

// The mean of points by their closeness, and how sure one is of it; of several at one place, their mean.
function estimate(points, across, up) {
  if (!points.length) return null;
  let sum = 0, weights = 0, nearest = Infinity;
  for (const point of points) {
    const distance = (point.u === null ? 0 : (point.u - across.middle) ** 2) + (point.v === null ? 0 : (point.v - up.middle) ** 2);
    const weight = (distance + 1e-4) ** -1.5;
    nearest = Math.min(nearest, distance);
    sum += weight * point.value;
    weights += weight;
  }
  const sure = Math.max(0, Math.min(1, (FAR - Math.sqrt(nearest)) / (FAR * 0.5)));
  return sure ? { mean: sum / weights, sure: sure * 0.85 } : null;
}
