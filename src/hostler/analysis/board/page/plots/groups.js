// Several curves as one: their mean, and a band of how far they lie apart.

const MOST = 1000; // places of a mean

export const BANDS = [["deviation", "deviation"], ["quantiles", "quartiles"], ["range", "min to max"], ["runs", "all runs"], ["none", "none"]];

// The mean of some series at places that suit all of them, with the band's ends and how many count at each place.
export function mean(all, band) {
  const x = common(all);
  const columns = all.map((one) => sampled(one, x));
  const [y, low, high] = [0, 0, 0].map(() => new Float64Array(x.length));
  const cells = new Float64Array(all.length);
  for (let n = 0; n < x.length; n++) {
    let count = 0, sum = 0;
    for (const column of columns) if (column[n] - column[n] === 0) { cells[count++] = column[n]; sum += column[n]; }
    y[n] = count ? sum / count : NaN;
    [low[n], high[n]] = ends(cells.subarray(0, count), y[n], band);
  }
  return { x, y, low, high };
}

function ends(cells, middle, band) {
  if (!cells.length) return [NaN, NaN];
  if (band === "deviation") {
    if (cells.length < 2) return [middle, middle];
    let sum = 0;
    for (const v of cells) sum += (v - middle) ** 2;
    const deviation = Math.sqrt(sum / (cells.length - 1));
    return [middle - deviation, middle + deviation];
  }
  cells.sort();
  if (band === "range") return [cells[0], cells.at(-1)];
  return [quantile(cells, 0.25), quantile(cells, 0.75)];
}

export function quantile(sorted, part) {
  const place = part * (sorted.length - 1), n = Math.floor(place);
  return n + 1 < sorted.length ? sorted[n] + (sorted[n + 1] - sorted[n]) * (place - n) : sorted[n];
}

// Places of a mean: those of the curves if they share them or are short, else evenly between the ends.
function common(all) {
  const first = all[0].x;
  if (first.length <= MOST && all.every((one) => one.x.length === first.length && one.x.every((v, n) => v === first[n]))) return first;
  const every = new Set();
  let [low, high] = [Infinity, -Infinity];
  for (const one of all) for (const v of one.x) if (v - v === 0) {
    if (v < low) low = v;
    if (v > high) high = v;
    if (every.size <= MOST) every.add(v);
  }
  if (every.size <= MOST) return Float64Array.from(every).sort();
  return Float64Array.from({ length: MOST }, (_, n) => low + ((high - low) * n) / (MOST - 1));
}

// A curve at these places: the mean of its points around each, or between its neighbours where there is none.
function sampled(one, x) {
  if (one.x === x) return one.y;
  const made = new Float64Array(x.length);
  const half = x.length > 1 ? (x[1] - x[0]) / 2 : 0;
  const dense = one.x.length > x.length * 1.5;
  for (let n = 0; n < x.length; n++) {
    if (!dense) { made[n] = one.value(x[n]); continue; }
    let sum = 0, count = 0;
    for (let i = one.find(x[n] - half); i < one.x.length && one.x[i] < x[n] + half; i++) if (one.y[i] - one.y[i] === 0) { sum += one.y[i]; count++; }
    made[n] = count ? sum / count : one.value(x[n]);
  }
  return made;
}
