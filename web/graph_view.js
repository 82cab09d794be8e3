// Draws a graph on a canvas; scopes open and close, the view pans and zooms.
import {layout} from './graph_layout.js';

/** @typedef {import('./graph_model.js').Scope} Scope */

export class GraphView {
  /** @param {HTMLElement} box @param {(scope: Scope | null) => void} chosen */
  constructor(box, chosen) {
    this.box = box;
    this.chosen = chosen;
    this.canvas = document.createElement('canvas');
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', 'the graph; double click or Enter opens a scope');
    box.append(this.canvas);
    /** @type {Scope | null} */
    this.root = null;
    /** @type {Scope | null} */
    this.selected = null;
    this.scale = 1;
    this.x = this.y = 0;
    this.pending = 0;
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(box);
    this.listen();
  }

  destroy() {
    this.resize.disconnect();
    cancelAnimationFrame(this.pending);
    this.canvas.remove();
  }

  /** @param {Scope} root */
  set(root) {
    this.root = root;
    // A graph of one scope alone is opened: what is in it is meant.
    for (let at = root; at.children.size === 1; ) {
      const [only] = at.children.values();
      if (only.children.size === 0) break;
      only.open = true;
      at = only;
    }
    layout(root);
    this.select(null);
    this.fit();
  }

  fit() {
    if (!this.root) return;
    const width = this.box.clientWidth, height = this.box.clientHeight;
    this.scale = Math.min(1.3, width / (this.root.width + 20), Math.max(0.35, height / (this.root.height + 20)));
    this.x = (width - this.root.width * this.scale) / 2;
    this.y = Math.max(4, (height - this.root.height * this.scale) / 2);
    this.draw();
  }

  /** @param {Scope | null} scope */
  select(scope) {
    this.selected = scope;
    this.chosen(scope);
    this.draw();
  }

  /**
   * Opens or closes, and keeps it where it was on the screen.
   * @param {Scope} scope
   * @param {boolean} open
   */
  toggle(scope, open = !scope.open) {
    if (!this.root || scope === this.root || scope.children.size === 0) return;
    const before = this.placeOf(scope);
    scope.open = open;
    layout(this.root);
    const after = this.placeOf(scope);
    this.x += (before.x + before.width / 2 - after.x - after.width / 2) * this.scale;
    this.y += (before.y - after.y) * this.scale;
    this.draw();
  }

  /**
   * Opens what is around it and brings it to the middle.
   * @param {Scope} scope
   */
  find(scope) {
    if (!this.root) return;
    for (let s = scope.parent; s; s = s.parent) s.open = true;
    layout(this.root);
    const place = this.placeOf(scope);
    this.scale = Math.max(this.scale, 0.8);
    this.x = this.box.clientWidth / 2 - (place.x + place.width / 2) * this.scale;
    this.y = this.box.clientHeight / 2 - (place.y + place.height / 2) * this.scale;
    this.select(scope);
  }

  /** @param {Scope} scope */
  placeOf(scope) {
    let x = 0, y = 0;
    for (let s = /** @type {Scope | null} */ (scope); s?.parent; s = s.parent) {
      x += s.x;
      y += s.y;
    }
    return {x, y, width: scope.width, height: scope.height};
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  paint() {
    const scale = devicePixelRatio || 1, width = this.box.clientWidth, height = this.box.clientHeight;
    if (!this.root || width < 40 || height < 40) return;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const g = /** @type {any} */ (this.canvas.getContext('2d'));  // roundRect is newer than some lists of types
    const css = getComputedStyle(this.box);
    this.dark = document.documentElement.dataset.theme === 'dark';
    this.text = css.getPropertyValue('--text');
    this.soft = css.getPropertyValue('--soft');
    this.line = css.getPropertyValue('--line');
    this.accent = css.getPropertyValue('--accent');
    g.setTransform(scale * this.scale, 0, 0, scale * this.scale, scale * this.x, scale * this.y);
    this.view = {left: -this.x / this.scale, top: -this.y / this.scale, right: (width - this.x) / this.scale, bottom: (height - this.y) / this.scale};
    this.paintInside(g, this.root, 0, 0, 0);
  }

  /** @param {CanvasRenderingContext2D} g @param {Scope} scope @param {number} x @param {number} y @param {number} depth */
  paintInside(g, scope, x, y, depth) {
    for (const edge of scope.edges) this.paintEdge(g, edge, x, y);
    for (const child of scope.children.values()) {
      const cx = x + child.x, cy = y + child.y, v = this.view;
      if (!v || cx > v.right || cy > v.bottom || cx + child.width < v.left || cy + child.height < v.top) continue;
      this.paintBox(g, child, cx, cy, depth);
      if (child.open && child.children.size > 0) this.paintInside(g, child, cx, cy, depth + 1);
    }
  }

  /** @param {any} g @param {Scope} child @param {number} x @param {number} y @param {number} depth */
  paintBox(g, child, x, y, depth) {
    const scope = child.children.size > 0, open = scope && child.open;
    const hue = hueOf(child.op ? child.op.op : child.label.replace(/_\d+$/, ''));
    g.beginPath();
    g.roundRect(x, y, child.width, child.height, child.op ? 13 : 6);
    g.fillStyle = open ? `hsl(215 ${this.dark ? '14% ' + (14 + depth * 3) : '40% ' + (97 - depth * 3)}%)` :
      `hsl(${hue} ${this.dark ? '32% 26%' : '62% 88%'})`;
    g.fill();
    g.lineWidth = child === this.selected ? 3 : 1;
    g.strokeStyle = child === this.selected ? this.accent || '' : open ? this.line || '' : `hsl(${hue} 40% ${this.dark ? 50 : 55}%)`;
    g.stroke();
    if (this.scale < 0.25) return;
    g.fillStyle = this.text || '';
    g.font = scope ? '600 12px system-ui, sans-serif' : '12px system-ui, sans-serif';
    g.textAlign = open ? 'left' : 'center';
    g.textBaseline = 'middle';
    const label = open ? `▾ ${child.label}` : scope ? `${child.label} (${child.ops})` : child.label;
    g.fillText(cut(g, label, child.width - 14), open ? x + 9 : x + child.width / 2, y + (open ? 13 : child.height / 2));
  }

  /** @param {CanvasRenderingContext2D} g @param {import('./graph_model.js').Edge} edge @param {number} x @param {number} y */
  paintEdge(g, edge, x, y) {
    const x0 = x + edge.from.x + edge.from.width / 2, y0 = y + edge.from.y + edge.from.height;
    const x1 = x + edge.to.x + edge.to.width / 2, y1 = y + edge.to.y;
    const near = edge.from === this.selected || edge.to === this.selected;
    g.strokeStyle = near ? this.accent || '' : this.soft || '';
    g.globalAlpha = near ? 1 : 0.55;
    g.lineWidth = Math.min(4, 0.8 + Math.log2(edge.count) * 0.5) + (near ? 0.6 : 0);
    g.setLineDash(edge.control ? [3, 3] : []);
    g.beginPath();
    g.moveTo(x0, y0);
    const bend = Math.max(16, Math.abs(y1 - y0) / 2);
    g.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
    g.stroke();
    g.setLineDash([]);
    g.beginPath();
    g.moveTo(x1 - 3.5, y1 - 6);
    g.lineTo(x1, y1);
    g.lineTo(x1 + 3.5, y1 - 6);
    g.stroke();
    if (edge.shape && edge.shape !== '[]' && this.scale > 0.6) {
      g.font = '10px system-ui, sans-serif';
      g.textAlign = 'left';
      g.fillStyle = this.soft || '';
      g.fillText(edge.shape, (x0 + x1) / 2 + 4, (y0 + y1) / 2);
    }
    g.globalAlpha = 1;
  }

  /**
   * The innermost box there.
   * @param {number} px
   * @param {number} py
   * @returns {Scope | null}
   */
  at(px, py) {
    let x = (px - this.x) / this.scale, y = (py - this.y) / this.scale;
    let found = null;
    for (let scope = this.root; scope; ) {
      let inside = null;
      for (const child of scope.children.values()) {
        if (x >= child.x && y >= child.y && x <= child.x + child.width && y <= child.y + child.height) inside = child;
      }
      if (!inside) break;
      found = inside;
      x -= inside.x;
      y -= inside.y;
      scope = inside.open && inside.children.size > 0 ? inside : null;
    }
    return found;
  }

  /** @param {number} px @param {number} py @param {number} factor */
  zoomAt(px, py, factor) {
    const scale = Math.min(4, Math.max(0.03, this.scale * factor));
    this.x = px - (px - this.x) * scale / this.scale;
    this.y = py - (py - this.y) * scale / this.scale;
    this.scale = scale;
    this.draw();
  }

  listen() {
    const c = this.canvas;
    /** @type {{x: number, y: number, moved: boolean} | null} */
    let drag = null;
    const place = (/** @type {MouseEvent} */ e) => {
      const box = c.getBoundingClientRect();
      return {x: e.clientX - box.left, y: e.clientY - box.top};
    };
    c.addEventListener('pointerdown', e => {
      c.setPointerCapture(e.pointerId);
      drag = {...place(e), moved: false};
    });
    c.addEventListener('pointermove', e => {
      if (!drag) return;
      const p = place(e);
      if (Math.abs(p.x - drag.x) + Math.abs(p.y - drag.y) < 4 && !drag.moved) return;
      this.x += p.x - drag.x;
      this.y += p.y - drag.y;
      drag = {...p, moved: true};
      this.draw();
    });
    c.addEventListener('pointerup', e => {
      if (drag && !drag.moved) this.select(this.at(place(e).x, place(e).y));
      drag = null;
    });
    c.addEventListener('dblclick', e => {
      const scope = this.at(place(e).x, place(e).y);
      if (scope) this.toggle(scope);
    });
    c.addEventListener('wheel', e => {
      e.preventDefault();
      const p = place(e);
      this.zoomAt(p.x, p.y, Math.exp(-e.deltaY * 0.0015));
    }, {passive: false});
    c.addEventListener('keydown', e => {
      const step = 60;
      if (e.key === 'Enter' && this.selected) this.toggle(this.selected);
      else if (e.key === '+' || e.key === '=') this.zoomAt(this.box.clientWidth / 2, this.box.clientHeight / 2, 1.25);
      else if (e.key === '-') this.zoomAt(this.box.clientWidth / 2, this.box.clientHeight / 2, 0.8);
      else if (e.key === '0') this.fit();
      else if (e.key === 'ArrowLeft') this.x += step;
      else if (e.key === 'ArrowRight') this.x -= step;
      else if (e.key === 'ArrowUp') this.y += step;
      else if (e.key === 'ArrowDown') this.y -= step;
      else return;
      e.preventDefault();
      e.stopPropagation();
      this.draw();
    });
  }
}

/**
 * The same word has always the same colour.
 * @param {string} word
 */
function hueOf(word) {
  let hash = 7;
  for (const c of word) hash = (hash * 31 + (c.codePointAt(0) || 0)) >>> 0;
  return hash % 360;
}

/** @param {CanvasRenderingContext2D} g @param {string} text @param {number} width */
function cut(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && g.measureText(`${text.slice(0, n)}…`).width > width) n = Math.floor(n * 0.85);
  return `${text.slice(0, n)}…`;
}
