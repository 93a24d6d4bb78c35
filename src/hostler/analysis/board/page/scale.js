// Axes: from values to pixels and back, and where the marks go.

export function scale(low, high, from, to, log) {
  const warp = log ? Math.log10 : (v) => v;
  const back = log ? (v) => 10 ** v : (v) => v;
  const [a, b] = [warp(low), warp(high)];
  const span = b - a || 1;
  return {
    low, high, log,
    at: (v) => from + ((warp(v) - a) / span) * (to - from),
    value: (pixel) => back(a + ((pixel - from) / (to - from)) * span),
  };
}

// Where marks go: round numbers, about `wanted` of them; powers of ten where the axis is logarithmic.
export function ticks({ low, high, log }, wanted) {
  if (log) {
    const [a, b] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    if (b - a >= 1) {
      const step = Math.max(1, Math.ceil((b - a) / wanted));
      return Array.from({ length: Math.floor((b - a) / step) + 1 }, (_, n) => 10 ** (a + n * step));
    }
  }
  const raw = (high - low) / Math.max(1, wanted);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) found.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return found;
}

// The range of finite values; only positive ones count on a logarithmic axis.
export function range(lists, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) for (const v of list) if (Number.isFinite(v) && (!log || v > 0)) { if (v < low) low = v; if (v > high) high = v; }
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (low === high) return log ? [low / 2, high * 2] : [low - (Math.abs(low) * 0.1 || 0.5), high + (Math.abs(high) * 0.1 || 0.5)];
  return [low, high];
}
