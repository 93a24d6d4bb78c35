// A curve of many points, drawn with as few as its place on the screen needs.
//
// Level k holds, of each stretch of 2^(k+1) points, where its lowest and its highest lie. What is drawn is always a real point, and no peak is lost.

export class Series {
  constructor(x, y) {
    Object.assign(this, { x, y, sorted: true, levels: [] });
    for (let n = 1; n < x.length; n++) if (!(x[n] >= x[n - 1])) { this.sorted = false; break; }
  }

  // The first place whose x is at least this.
  find(value) {
    let low = 0, high = this.x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The value at x, between its neighbours; NaN beyond the ends.
  value(x) {
    const n = this.find(x);
    if (n >= this.x.length || (n === 0 && this.x[0] !== x)) return NaN;
    if (this.x[n] === x || n === 0) return this.y[n];
    const part = (x - this.x[n - 1]) / (this.x[n] - this.x[n - 1]);
    return this.y[n - 1] + (this.y[n] - this.y[n - 1]) * part;
  }

  level(k) {
    if (!this.levels[k]) this.levels[k] = k === 1 ? extremes(this.y, null, this.x.length) : extremes(this.y, this.level(k - 1), this.x.length);
    return this.levels[k];
  }

  // Moves and lines of a pen over what lies between low and high, with about `most` of them.
  trace(pen, sx, sy, low, high, most) {
    const [x, y] = [this.x, this.y];
    const begin = this.sorted ? Math.max(0, this.find(low) - 1) : 0;
    const end = this.sorted ? Math.min(x.length, this.find(high) + 2) : x.length;
    let k = 0;
    while (this.sorted && (end - begin) > most * 2 ** k && k < 24) k++;
    const [ax, ay] = [sx.at, sy.at];
    const positive = sy.log, right = sx.log;
    let down = false, count = 0;
    const put = (i) => {
      const v = i < 0 ? NaN : y[i], w = i < 0 ? NaN : x[i];
      if (!(v - v === 0) || !(w - w === 0) || (positive && v <= 0) || (right && w <= 0)) { down = false; return; }
      const px = ax(w), py = Math.max(-20000, Math.min(20000, ay(v)));
      down ? pen.lineTo(px, py) : pen.moveTo(px, py);
      down = true;
      count++;
    };
    if (!k) for (let i = begin; i < end; i++) put(i);
    else {
      const places = this.level(k), size = 2 ** (k + 1);
      put(begin);
      for (let b = Math.floor(begin / size); b * size < end; b++) { put(places[2 * b]); put(places[2 * b + 1]); }
      put(end - 1);
    }
    return count;
  }
}

// Of each four points, or of each two stretches below, where the lowest and the highest of their values are, in order; -1 where there is none.
function extremes(y, below, length) {
  const stretches = Math.ceil((below ? below.length : length) / 4);
  const found = new Int32Array(stretches * 2);
  for (let b = 0; b < stretches; b++) {
    let low = -1, high = -1;
    for (let j = 4 * b; j < 4 * b + 4; j++) {
      const i = below ? (j < below.length ? below[j] : -1) : j < length ? j : -1;
      if (i < 0 || !(y[i] - y[i] === 0)) continue;
      if (low < 0 || y[i] < y[low]) low = i;
      if (high < 0 || y[i] > y[high]) high = i;
    }
    found[2 * b] = Math.min(low, high);
    found[2 * b + 1] = Math.max(low, high);
  }
  return found;
}

// An exponential moving average, without the pull of its first value; a gap stays a gap.
export function smooth(y, weight) {
  if (!weight) return y;
  const made = new Float64Array(y.length);
  let sum = 0, left = 1;
  for (let n = 0; n < y.length; n++) {
    if (!(y[n] - y[n] === 0)) { made[n] = NaN; continue; }
    sum = sum * weight + (1 - weight) * y[n];
    left *= weight;
    made[n] = sum / (1 - left);
  }
  return made;
}
