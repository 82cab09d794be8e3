// A chart of lines on a canvas: sharp on every screen, with zoom, pan and one tooltip for all lines.
import {linearTicks, logTicks, relativeTicks, wallTicks} from './ticks.js';

/**
 * @typedef {{name: string, colour: string, xs: Float64Array, ys: Float64Array, smooth: Float64Array | null}} Line
 *   ys: the values; smooth: what is drawn strongly, where it is smoothed
 * @typedef {{xKind: 'step'|'relative'|'wall'|'plain', logY: boolean, clip: boolean}} ChartOptions
 * @typedef {{line: Line, index: number, distance: number}} Hit
 */

const AXES = {left: 52, right: 10, top: 8, bottom: 22}, BARE = {left: 4, right: 4, top: 4, bottom: 4};

export class LineChart {
  /**
   * @param {HTMLElement} box
   * @param {{bare?: boolean, zoomed?: (range: [number, number] | null) => void, tip?: (hits: Hit[], x: number, event: PointerEvent | null) => void}} [calls]
   */
  constructor(box, calls = {}) {
    this.box = box;
    this.calls = calls;
    this.margin = calls.bare ? BARE : AXES;  // bare: without axes
    this.canvas = document.createElement('canvas');
    // What follows the pointer is drawn above the lines, which are many.
    this.front = document.createElement('canvas');
    this.front.setAttribute('role', 'img');
    this.front.tabIndex = 0;
    box.append(this.canvas, this.front);
    this.width = this.height = 0;
    this.stale = true;  // the ranges
    /** @type {Line[]} */
    this.lines = [];
    /** @type {ChartOptions} */
    this.options = {xKind: 'step', logY: false, clip: false};
    /** @type {[number, number] | null} */
    this.zoom = null;
    /** @type {[number, number]} */
    this.xRange = [0, 1];
    /** @type {[number, number]} */
    this.yRange = [0, 1];
    /** @type {number | null} */
    this.hover = null;
    /** @type {[number, number] | null} */
    this.drag = null;
    this.panning = false;
    this.pending = 0;
    this.frontOnly = true;
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(box);
    this.listen();
  }

  destroy() {
    this.resize.disconnect();
    cancelAnimationFrame(this.pending);
    this.calls.tip?.([], 0, null);
    this.canvas.remove();
    this.front.remove();
  }

  /** @param {Line[]} lines @param {ChartOptions} options */
  set(lines, options) {
    this.lines = lines;
    if (options.xKind !== this.options.xKind) this.zoom = null;
    this.options = options;
    this.stale = true;
    this.front.setAttribute('aria-label', `${lines.length} lines: ${lines.slice(0, 5).map(line => line.name).join(', ')}`);
    this.draw();
  }

  /** @param {[number, number] | null} range */
  setZoom(range) {
    this.zoom = range;
    this.stale = true;
    this.draw();
  }

  draw() {
    this.frontOnly = false;
    this.drawFront();
  }

  drawFront() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      if (!this.frontOnly) this.paint();
      this.frontOnly = true;
      this.paintFront();
    });
  }

  /** @param {HTMLCanvasElement} canvas */
  begin(canvas) {
    const scale = window.devicePixelRatio || 1;
    const wide = Math.round(this.width * scale), high = Math.round(this.height * scale);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    return g;
  }

  /** @param {number} v */
  yOf(v) { return this.options.logY ? Math.log10(v) : v; }

  findRanges() {
    let low = Infinity, high = -Infinity;
    for (const {xs} of this.lines) {
      for (let i = 0; i < xs.length; i++) {
        if (xs[i] < low) low = xs[i];
        if (xs[i] > high) high = xs[i];
      }
    }
    if (!(low <= high)) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    this.xRange = this.zoom || [low, high];
    const seen = [];
    let bottom = Infinity, top = -Infinity;
    for (const line of this.lines) {
      const drawn = line.smooth || line.ys;
      for (let i = 0; i < drawn.length; i++) {
        if (line.xs[i] < this.xRange[0] || line.xs[i] > this.xRange[1]) continue;
        for (const v of line.smooth && !this.options.clip ? [line.ys[i], drawn[i]] : [drawn[i]]) {
          const y = this.yOf(v);
          if (!Number.isFinite(y)) continue;
          if (y < bottom) bottom = y;
          if (y > top) top = y;
          if (this.options.clip) seen.push(y);
        }
      }
    }
    if (this.options.clip && seen.length > 20) {  // as in TensorBoard, the outer 5 % of the values do not count
      seen.sort((a, b) => a - b);
      bottom = seen[Math.floor(seen.length * 0.05)];
      top = seen[Math.ceil(seen.length * 0.95) - 1];
    }
    if (!(bottom <= top)) [bottom, top] = [0, 1];
    const pad = (top - bottom) * 0.06 || Math.abs(top) * 0.05 || 0.5;
    this.yRange = [bottom - pad, top + pad];
  }

  /** @param {number} x */
  toX(x) { return this.margin.left + (x - this.xRange[0]) / (this.xRange[1] - this.xRange[0]) * (this.width - this.margin.left - this.margin.right); }
  /** @param {number} px */
  fromX(px) { return this.xRange[0] + (px - this.margin.left) / (this.width - this.margin.left - this.margin.right) * (this.xRange[1] - this.xRange[0]); }
  /** @param {number} y a value, or its logarithm */
  toY(y) { return this.height - this.margin.bottom - (y - this.yRange[0]) / (this.yRange[1] - this.yRange[0]) * (this.height - this.margin.top - this.margin.bottom); }

  paint() {
    this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
    if (this.width < 80 || this.height < 40) return;
    const g = this.begin(this.canvas);
    if (this.stale) this.findRanges();
    this.stale = false;
    if (!this.calls.bare) this.paintAxes(g);
    g.save();
    g.beginPath();
    g.rect(this.margin.left - 4, this.margin.top - 4, this.width - this.margin.left - this.margin.right + 8, this.height - this.margin.top - this.margin.bottom + 8);
    g.clip();
    for (const line of this.lines) {
      if (line.smooth) this.paintLine(g, line, line.ys, 0.28, 1);
    }
    for (const line of this.lines) this.paintLine(g, line, line.smooth || line.ys, 1, 1.6);
    g.restore();
  }

  paintFront() {
    if (this.width < 80 || this.height < 40) return;
    const g = this.begin(this.front);
    this.paintHover(g);
    if (this.drag && !this.panning) {
      g.fillStyle = 'rgb(80 140 255 / 22%)';
      g.fillRect(Math.min(...this.drag), this.margin.top, Math.abs(this.drag[1] - this.drag[0]), this.height - this.margin.top - this.margin.bottom);
    }
  }

  /** @param {CanvasRenderingContext2D} g */
  paintAxes(g) {
    const css = getComputedStyle(this.box);
    const soft = css.getPropertyValue('--soft'), grid = css.getPropertyValue('--grid');
    g.font = '11px system-ui, sans-serif';
    g.lineWidth = 1;
    const kind = this.options.xKind;
    const many = Math.max(2, Math.floor((this.width - this.margin.left) / 90));
    const xTicks = (kind === 'wall' ? wallTicks : kind === 'relative' ? relativeTicks : linearTicks)(...this.xRange, many);
    const yTicks = (this.options.logY ? logTicks : linearTicks)(...this.yRange, Math.max(2, Math.floor(this.height / 45)));
    g.strokeStyle = grid;
    g.fillStyle = soft;
    g.textBaseline = 'top';
    g.textAlign = 'center';
    for (const tick of xTicks) {
      const x = Math.round(this.toX(tick.at)) + 0.5;
      if (x < this.margin.left - 1 || x > this.width - this.margin.right + 1) continue;
      stroke(g, x, this.margin.top, x, this.height - this.margin.bottom);
      const half = g.measureText(tick.text).width / 2;
      g.fillText(tick.text, Math.min(x, this.width - half - 2), this.height - this.margin.bottom + 6);
    }
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    for (const tick of yTicks) {
      const y = Math.round(this.toY(tick.at)) + 0.5;
      if (y < this.margin.top - 1 || y > this.height - this.margin.bottom + 1) continue;
      stroke(g, this.margin.left, y, this.width - this.margin.right, y);
      g.fillText(tick.text, this.margin.left - 6, y);
    }
  }

  /** @param {CanvasRenderingContext2D} g @param {Line} line @param {Float64Array} ys @param {number} alpha @param {number} width */
  paintLine(g, line, ys, alpha, width) {
    g.globalAlpha = alpha;
    g.strokeStyle = g.fillStyle = line.colour;
    g.lineWidth = width;
    g.lineJoin = 'round';
    g.beginPath();
    let pen = false, drawn = 0, lastX = 0, lastY = 0;
    for (let i = 0; i < ys.length; i++) {
      const y = this.yOf(ys[i]);
      if (!Number.isFinite(y)) {
        pen = false;
        continue;
      }
      lastX = this.toX(line.xs[i]);
      lastY = this.toY(y);
      if (pen) g.lineTo(lastX, lastY);
      else g.moveTo(lastX, lastY);
      pen = true;
      drawn++;
    }
    g.stroke();
    if (drawn === 1 && alpha === 1) dot(g, lastX, lastY, 3);
    if (alpha === 1) this.paintNotFinite(g, line);
    g.globalAlpha = 1;
  }

  /**
   * Values that no axis has stand at the edge: triangles.
   * @param {CanvasRenderingContext2D} g
   * @param {Line} line
   */
  paintNotFinite(g, line) {
    let last = -Infinity;
    for (let i = 0; i < line.ys.length; i++) {
      if (Number.isFinite(this.yOf(line.ys[i]))) continue;
      const x = this.toX(line.xs[i]);
      if (x - last < 7) continue;
      last = x;
      const y = this.height - this.margin.bottom - 5, up = line.ys[i] === Infinity;
      g.beginPath();
      g.moveTo(x - 4, up ? this.margin.top + 6 : y + 3);
      g.lineTo(x + 4, up ? this.margin.top + 6 : y + 3);
      g.lineTo(x, up ? this.margin.top : y - 4);
      g.fill();
    }
  }

  /** @param {CanvasRenderingContext2D} g */
  paintHover(g) {
    if (this.hover === null) return;
    const x = this.toX(this.hover);
    if (x < this.margin.left || x > this.width - this.margin.right) return;
    g.strokeStyle = getComputedStyle(this.box).getPropertyValue('--soft');
    g.lineWidth = 1;
    stroke(g, Math.round(x) + 0.5, this.margin.top, Math.round(x) + 0.5, this.height - this.margin.bottom);
    for (const {line, index} of this.hits(this.hover, null)) {
      const y = this.yOf((line.smooth || line.ys)[index]);
      if (!Number.isFinite(y)) continue;
      g.fillStyle = line.colour;
      dot(g, this.toX(line.xs[index]), this.toY(y), 3);
    }
  }

  /**
   * The nearest point of each line.
   * @param {number} x
   * @param {number | null} py where the pointer is
   * @returns {Hit[]}
   */
  hits(x, py) {
    const hits = [];
    for (const line of this.lines) {
      const index = nearest(line.xs, x);
      if (index < 0) continue;
      const y = this.yOf((line.smooth || line.ys)[index]);
      hits.push({line, index, distance: py === null || !Number.isFinite(y) ? Infinity : Math.abs(this.toY(y) - py)});
    }
    return hits;
  }

  listen() {
    const c = this.front;
    const place = (/** @type {PointerEvent | WheelEvent} */ e) => e.clientX - c.getBoundingClientRect().left;
    c.addEventListener('pointermove', e => {
      const px = place(e);
      if (this.drag) {
        if (this.panning) {
          const by = this.fromX(this.drag[1]) - this.fromX(px);
          this.zoomTo([this.xRange[0] + by, this.xRange[1] + by]);
        }
        this.drag[1] = px;
      }
      this.hover = this.fromX(px);
      this.calls.tip?.(this.hits(this.hover, e.clientY - c.getBoundingClientRect().top), this.hover, e);
      this.drawFront();
    });
    c.addEventListener('pointerleave', () => {
      this.hover = null;
      this.calls.tip?.([], 0, null);
      this.drawFront();
    });
    c.addEventListener('pointerdown', e => {
      if (e.button !== 0) return;
      c.setPointerCapture(e.pointerId);
      this.panning = e.shiftKey;
      this.drag = [place(e), place(e)];
    });
    c.addEventListener('pointerup', () => {
      const drag = this.drag;
      this.drag = null;
      if (drag && !this.panning && Math.abs(drag[1] - drag[0]) > 5) {
        const [a, b] = [this.fromX(drag[0]), this.fromX(drag[1])].sort((p, q) => p - q);
        this.zoomTo([a, b]);
      }
      this.panning = false;
      this.drawFront();
    });
    c.addEventListener('dblclick', () => this.zoomTo(null));
    c.addEventListener('wheel', e => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      const at = this.fromX(place(e)), factor = Math.exp(e.deltaY * 0.002);
      this.zoomTo([at + (this.xRange[0] - at) * factor, at + (this.xRange[1] - at) * factor]);
    }, {passive: false});
    c.addEventListener('keydown', e => {
      const [a, b] = this.xRange, size = b - a;
      if (e.key === '+' || e.key === '=') this.zoomTo([a + size / 4, b - size / 4]);
      else if (e.key === '-') this.zoomTo([a - size / 2, b + size / 2]);
      else if (e.key === 'ArrowLeft') this.zoomTo([a - size / 8, b - size / 8]);
      else if (e.key === 'ArrowRight') this.zoomTo([a + size / 8, b + size / 8]);
      else if (e.key === '0') this.zoomTo(null);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }

  /** @param {[number, number] | null} range */
  zoomTo(range) {
    this.setZoom(range);
    this.calls.zoomed?.(range);
  }
}

/** @param {CanvasRenderingContext2D} g @param {number} x @param {number} y @param {number} r */
function dot(g, x, y, r) {
  g.beginPath();
  g.arc(x, y, r, 0, 2 * Math.PI);
  g.fill();
}

/** @param {CanvasRenderingContext2D} g @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
function stroke(g, x0, y0, x1, y1) {
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
}

/** The place of the x that is nearest. Lines of runs that were restarted go back, so all are looked at.
 * @param {Float64Array} xs @param {number} x */
function nearest(xs, x) {
  let best = -1, least = Infinity;
  for (let i = 0; i < xs.length; i++) {
    const distance = Math.abs(xs[i] - x);
    if (distance <= least) [best, least] = [i, distance];
  }
  return best;
}
