// The tab of histograms: the newest in front of the older ones, or bands of percentiles over the steps.
import {ask} from './api.js';
import {CardList, emptyTab, planByTag, cardHeading, tagFilter} from './cards.js';
import {el} from './dom.js';
import {numberOf, short, whole} from './format.js';
import {store} from './store.js';
import {linearTicks} from './ticks.js';

/**
 * @typedef {import('./store.js').Series} Series
 * @typedef {{step: number, left: number[], right: number[], count: number[]}} Histogram
 */

const MOST = 60;  // steps that are drawn, evenly of all
const PERCENTILES = [0, 0.0668, 0.1587, 0.3085, 0.5, 0.6915, 0.8413, 0.9332, 1];
/** @type {'ridge' | 'overlay' | 'bands'} */
let mode = 'ridge';
/** @type {Set<HistogramCard>} */
const cards = new Set();

class HistogramCard {
  constructor() {
    this.id = 0;
    this.colour = '';
    /** @type {Histogram[]} */
    this.rows = [];
    /** @type {Map<string, Histogram>} */
    this.known = new Map();
    this.head = el('div', {class: 'heading'});
    this.note = el('span', {class: 'note'});
    this.canvas = el('canvas', {role: 'img'});
    this.box = el('div', {class: 'chart'}, this.canvas);
    this.node = el('article', {class: 'card'}, el('div', {class: 'title'}, this.head, this.note,
      el('button', {class: 'quiet', title: 'Whole width', 'aria-label': 'Whole width', text: '⤢', onclick: () => this.node.classList.toggle('wide')})), this.box);
    this.resize = new ResizeObserver(() => this.redraw());
    this.resize.observe(this.box);
    this.pointer = /** @type {{x: number, y: number} | null} */ (null);
    this.canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ e) => {
      const box = this.canvas.getBoundingClientRect();
      this.pointer = {x: e.clientX - box.left, y: e.clientY - box.top};
      this.redraw();
    });
    this.canvas.addEventListener('pointerleave', () => {
      this.pointer = null;
      this.redraw();
    });
    cards.add(this);
  }

  destroy() {
    this.resize.disconnect();
    cards.delete(this);
  }

  /** @param {Series[]} series */
  show([series]) {
    this.id = series.id;
    this.colour = store.colourOf(series.run);
    this.head.replaceChildren(cardHeading(series));
    this.canvas.setAttribute('aria-label', `histograms of ${series.tag} of ${series.run}`);
  }

  async load() {
    const {at, count} = await ask('/api/places', {series: this.id});
    const chosen = [];
    const n = Math.min(MOST, at.length);
    for (let i = 0; i < n; i++) chosen.push(at[n === 1 ? 0 : Math.round(i * (at.length - 1) / (n - 1))]);
    const missing = chosen.filter(place => !this.known.has(place));
    if (missing.length > 0) {
      const {values} = await ask('/api/values', {series: this.id, at: missing.join()});
      missing.forEach((place, i) => {
        const histogram = histogramOf(values[i]);
        if (histogram) this.known.set(place, histogram);
        else if (values[i].error) throw new Error(values[i].error);
      });
    }
    this.known = new Map(chosen.filter(place => this.known.has(place)).map(place => [place, /** @type {Histogram} */ (this.known.get(place))]));
    this.rows = [...this.known.values()];
    this.note.textContent = count > n ? `${n} of ${whole(count)} steps` : '';
    this.redraw();
  }

  redraw() {
    const scale = devicePixelRatio || 1, width = this.box.clientWidth, height = this.box.clientHeight;
    if (width < 60 || height < 40) return;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const g = this.canvas.getContext('2d');
    g.scale(scale, scale);
    g.font = '11px system-ui, sans-serif';
    const css = getComputedStyle(this.box);
    const frame = {g, width, height, soft: css.getPropertyValue('--soft'), grid: css.getPropertyValue('--grid'),
      card: css.getPropertyValue('--card'), text: css.getPropertyValue('--text')};
    const rows = this.rows.filter(row => row.count.length > 0);
    if (rows.length === 0) {
      g.fillStyle = frame.soft;
      g.fillText(this.rows.length > 0 ? 'empty histograms' : '', 12, 24);
    } else if (mode === 'bands') {
      this.drawBands(frame, rows);
    } else {
      this.drawRidges(frame, rows, mode === 'ridge');
    }
  }

  /** @param {any} f @param {Histogram[]} rows @param {boolean} ridge */
  drawRidges(f, rows, ridge) {
    const {g, width, height} = f;
    const [low, high] = valueRange(rows);
    const left = 10, right = 52, bottom = 20, top = 8;
    const toX = (/** @type {number} */ v) => left + (v - low) / (high - low) * (width - left - right);
    g.fillStyle = f.soft;
    g.textAlign = 'center';
    for (const tick of linearTicks(low, high, Math.max(2, Math.floor(width / 80)))) {
      g.fillText(tick.text, toX(tick.at), height - 6);
    }
    const most = Math.max(...rows.map(row => Math.max(...densities(row))), 1e-300);
    const space = height - bottom - top;
    const peak = ridge ? space * 0.4 : space * 0.95;
    const base = (/** @type {number} */ i) => ridge && rows.length > 1 ?
      top + peak + (space - peak) * i / (rows.length - 1) : height - bottom;
    let near = -1;
    if (this.pointer && ridge) {
      near = 0;
      rows.forEach((_, i) => {
        if (Math.abs(base(i) - (this.pointer?.y || 0)) < Math.abs(base(near) - (this.pointer?.y || 0))) near = i;
      });
    }
    rows.forEach((row, i) => {
      const y0 = base(i), heights = densities(row);
      g.beginPath();
      g.moveTo(toX(row.left[0]), y0);
      heights.forEach((d, k) => {
        const y = y0 - d / most * peak;
        g.lineTo(toX(row.left[k]), y);
        g.lineTo(toX(row.right[k]), y);
      });
      g.lineTo(toX(row.right[row.right.length - 1]), y0);
      const age = rows.length > 1 ? i / (rows.length - 1) : 1;
      if (ridge) {
        g.fillStyle = f.card;
        g.globalAlpha = 0.75;
        g.fill();
        g.fillStyle = this.colour;
        g.globalAlpha = 0.15 + 0.5 * age;
        g.fill();
      }
      g.globalAlpha = ridge ? 1 : 0.15 + 0.85 * age;
      g.strokeStyle = i === near ? f.text : this.colour;
      g.lineWidth = i === near ? 2 : 0.8;
      g.stroke();
      g.globalAlpha = 1;
    });
    g.fillStyle = f.soft;
    g.textAlign = 'left';
    const every = Math.max(1, Math.ceil(rows.length / Math.max(2, Math.floor(space / 26))));
    if (ridge) rows.forEach((row, i) => { if (i % every === 0) g.fillText(short(row.step), width - right + 5, base(i)); });
    if (near >= 0) {
      const row = rows[near];
      g.fillStyle = f.text;
      const v = low + ((this.pointer?.x || 0) - left) / (width - left - right) * (high - low);
      const k = row.left.findIndex((edge, j) => v >= edge && v <= row.right[j]);
      g.fillText(`step ${whole(row.step)}` + (k >= 0 ? `: ${short(row.count[k])} from ${short(row.left[k], 3)} to ${short(row.right[k], 3)}` : ''), left, top + 6);
    }
  }

  /** @param {any} f @param {Histogram[]} rows */
  drawBands(f, rows) {
    const {g, width, height} = f;
    const left = 50, right = 10, bottom = 20, top = 8;
    const [low, high] = valueRange(rows);
    let [first, last] = [rows[0].step, rows[rows.length - 1].step];
    if (first === last) [first, last] = [first - 0.5, last + 0.5];
    const toX = (/** @type {number} */ step) => left + (step - first) / (last - first) * (width - left - right);
    const toY = (/** @type {number} */ v) => height - bottom - (v - low) / (high - low) * (height - top - bottom);
    g.fillStyle = f.soft;
    g.strokeStyle = f.grid;
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    for (const tick of linearTicks(low, high, 5)) {
      g.fillText(tick.text, left - 5, toY(tick.at));
    }
    g.textAlign = 'center';
    g.textBaseline = 'alphabetic';
    for (const tick of linearTicks(first, last, Math.floor(width / 90))) g.fillText(tick.text, toX(tick.at), height - 6);
    // One step alone is as wide as the chart.
    const points = rows.map(row => ({x: toX(row.step), values: PERCENTILES.map(p => percentile(row, p))}));
    if (points.length === 1) points.splice(0, 1, {...points[0], x: left}, {...points[0], x: width - right});
    const n = PERCENTILES.length;
    g.fillStyle = this.colour;
    for (let b = 0; b < Math.floor(n / 2); b++) {
      g.beginPath();
      for (const point of points) g.lineTo(point.x, toY(point.values[b]));
      for (const point of [...points].reverse()) g.lineTo(point.x, toY(point.values[n - 1 - b]));
      g.globalAlpha = 0.2;
      g.fill();
    }
    g.globalAlpha = 1;
    g.strokeStyle = this.colour;
    g.lineWidth = 1.6;
    g.beginPath();
    for (const point of points) g.lineTo(point.x, toY(point.values[(n - 1) / 2]));
    g.stroke();
  }
}

/** @param {any} value @returns {Histogram | null} */
function histogramOf(value) {
  if (!value.shape || value.shape.length !== 2 || value.shape[1] !== 3) return null;
  /** @type {Histogram} */
  const out = {step: value.step, left: [], right: [], count: []};
  for (let i = 0; i + 2 < value.values.length; i += 3) {
    const [left, right, count] = value.values.slice(i, i + 3).map(numberOf);
    if (!Number.isFinite(left) || !Number.isFinite(right) || !Number.isFinite(count)) continue;
    out.left.push(left);
    out.right.push(right);
    out.count.push(count);
  }
  return out;
}

/**
 * Buckets may be of different widths.
 * @param {Histogram} row
 */
function densities(row) {
  const span = Math.max(1e-300, row.right[row.right.length - 1] - row.left[0]);
  return row.count.map((count, k) => count / Math.max(row.right[k] - row.left[k], span * 1e-6));
}

/** @param {Histogram[]} rows @returns {[number, number]} */
function valueRange(rows) {
  let low = Math.min(...rows.map(row => row.left[0])), high = Math.max(...rows.map(row => row.right[row.right.length - 1]));
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return [low, high];
}

/** @param {Histogram} row @param {number} p */
function percentile(row, p) {
  const total = row.count.reduce((a, b) => a + b, 0);
  let seen = 0;
  for (let k = 0; k < row.count.length; k++) {
    if (row.count[k] > 0 && seen + row.count[k] >= p * total) {
      return row.left[k] + (row.right[k] - row.left[k]) * (p * total - seen) / row.count[k];
    }
    seen += row.count[k];
  }
  return row.right[row.right.length - 1];
}

export const histograms = {
  name: 'histograms',
  title: 'Histograms',
  plugins: ['histograms'],
  /** @param {HTMLElement} main */
  mount(main) {
    const box = el('div');
    const select = el('select', {onchange: () => {
      mode = select.value;
      for (const card of cards) card.redraw();
    }}, el('option', {value: 'ridge', text: 'One behind the other'}), el('option', {value: 'overlay', text: 'One over the other'}),
      el('option', {value: 'bands', text: 'Distribution over steps'}));
    select.value = mode;
    main.append(el('div', {class: 'toolbar'}, tagFilter(), el('label', {}, 'Shown', select)), box);
    const list = new CardList(box, {
      plan: () => planByTag(['histograms']),
      make: () => new HistogramCard(),
      empty: () => emptyTab('histograms', 'summary::histogram("weights", kernel, step);'),
    });
    return {update: (/** @type {any} */ change) => list.update(change), destroy: () => list.destroy()};
  },
};
