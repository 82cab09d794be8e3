// The tab of scalars: a card for each tag, a line for each run.
import {ask} from './api.js';
import {CardList, emptyTab, prefix, tagFilter} from './cards.js';
import {LineChart} from './chart.js';
import {download, el} from './dom.js';
import {duration, moment, numberOf, short, whole} from './format.js';
import {smooth} from './smooth.js';
import {store} from './store.js';
import {showTip} from './tip.js';

/** @typedef {import('./store.js').Series} Series */

const HOW = `const auto writer = summary::create_file_writer("./tensorboard");
const auto scope = writer.as_default();
summary::scalar("loss", loss, step);`;

// What all cards share when zoom is shared.
/** @type {Set<ScalarCard>} */
const cards = new Set();

class ScalarCard {
  /** @param {string} tag @param {string} key */
  constructor(tag, key) {
    this.tag = tag;
    /** @type {Series[]} */
    this.series = [];
    /** @type {any[]} */
    this.answers = [];
    this.pin = el('button', {class: 'quiet', title: 'Pin to the top', 'aria-label': 'Pin', text: 'Pin', onclick: () => this.togglePin()});
    this.note = el('span', {class: 'note'});
    this.menu = el('select', {'aria-label': 'Save', title: 'Save', onchange: () => this.save()});
    this.box = el('div', {class: 'chart'});
    this.node = el('article', {class: 'card', 'data-tag': tag},
      el('div', {class: 'title'}, el('h3', {text: tag, title: tag}), this.note, this.pin,
        el('button', {class: 'quiet', title: 'Whole width', 'aria-label': 'Whole width', text: '⤢', onclick: () => this.toggleWide()}),
        el('button', {class: 'quiet', title: 'All of the line (double click)', 'aria-label': 'Zoom out', text: '⟲', onclick: () => this.chart.zoomTo(null)}),
        this.menu),
      this.box);
    if (store.list('open').includes(tag)) this.node.classList.add('wide');
    this.chart = new LineChart(this.box, {zoomed: range => this.zoomed(range), tip: (hits, x, event) => this.tip(hits, event)});
    this.zoomTimer = 0;
    cards.add(this);
  }

  destroy() {
    clearTimeout(this.zoomTimer);
    this.chart.destroy();
    cards.delete(this);
  }

  togglePin() {
    const pins = store.list('pin');
    store.chooseList('pin', pins.includes(this.tag) ? pins.filter(tag => tag !== this.tag) : [...pins, this.tag]);
  }

  toggleWide() {
    const wide = this.node.classList.toggle('wide');
    const others = store.list('open').filter(tag => tag !== this.tag);
    store.chooseList('open', wide ? [...others, this.tag] : others);
  }

  /** @param {Series[]} series */
  show(series) {
    this.series = series;
    const odd = series.reduce((sum, one) => sum + (one.not_finite || 0), 0);
    this.note.textContent = odd > 0 ? `⚠ ${whole(odd)} not finite` : '';
    this.note.title = 'Values that are NaN or infinite, drawn as triangles';
    this.node.querySelector('h3').title = [this.tag, ...new Set(series.map(one => one.description).filter(Boolean))].join('\n');
    this.menu.replaceChildren(el('option', {text: 'Save', value: ''}), el('option', {text: 'PNG', value: 'png'}),
      ...series.slice(0, 100).flatMap(one => ['csv', 'json'].map(kind =>
        el('option', {text: `${kind.toUpperCase()}: ${one.run}`, value: `${kind} ${one.id}`}))));
  }

  async load() {
    if (this.series.length === 0) return;
    const range = this.stepRange();
    const points = Math.max(200, Math.min(2000, Math.round(this.box.clientWidth * 2) || 600));
    const answers = [];
    for (let i = 0; i < this.series.length; i += 400) {
      const ids = this.series.slice(i, i + 400).map(one => one.id).join();
      answers.push(...(await ask('/api/lines', {series: ids, points, from: range?.[0], to: range?.[1]})).lines);
    }
    this.answers = answers.map(answer => ({
      series: answer.series,
      all: answer.all,
      steps: Float64Array.from(answer.steps),
      walls: Float64Array.from(answer.walls, numberOf),
      values: Float64Array.from(answer.values, numberOf),
    }));
    this.redraw();
  }

  /**
   * The steps that are seen, and some at each side, where the chart is zoomed.
   * @returns {[number, number] | null}
   */
  stepRange() {
    const zoom = this.chart.zoom;
    if (!zoom || this.answers.length === 0) return null;
    const pad = (zoom[1] - zoom[0]) * 0.1;
    let low = Infinity, high = -Infinity;
    if (store.view.x === 'step') {
      [low, high] = [zoom[0] - pad, zoom[1] + pad];
    } else {
      for (const line of this.chart.lines) {
        const steps = /** @type {any} */ (line).steps;
        for (let i = 0; i < line.xs.length; i++) {
          if (line.xs[i] < zoom[0] - pad || line.xs[i] > zoom[1] + pad) continue;
          low = Math.min(low, steps[i]);
          high = Math.max(high, steps[i]);
        }
      }
    }
    return low <= high ? [Math.floor(low), Math.ceil(high)] : null;
  }

  redraw() {
    const kind = /** @type {'step'|'relative'|'wall'} */ (store.view.x);
    const weight = Number(store.view.smooth) || 0;
    const lines = [];
    for (const answer of this.answers) {
      const series = store.series.get(answer.series);
      if (!series) continue;
      const xs = kind === 'step' ? answer.steps :
        kind === 'wall' ? answer.walls : answer.walls.map((/** @type {number} */ wall) => wall - series.first_wall);
      lines.push({name: series.run, colour: store.colourOf(series.run), xs, ys: answer.values, steps: answer.steps,
        walls: answer.walls, smooth: weight > 0 ? smooth(answer.values, weight) : null, series});
    }
    this.chart.set(lines, {xKind: kind, logY: store.view.y === 'log', clip: store.view.clip === '1'});
    this.pin.setAttribute('aria-pressed', String(store.list('pin').includes(this.tag)));
  }

  /** @param {[number, number] | null} range */
  zoomed(range) {
    for (const card of store.view.share === '1' ? cards : [this]) {
      if (card !== this) card.chart.setZoom(range);
      clearTimeout(card.zoomTimer);
      card.zoomTimer = setTimeout(() => card.load().catch(() => {}), 150);
    }
  }

  /** @param {import('./chart.js').Hit[]} hits @param {PointerEvent | null} event */
  tip(hits, event) {
    const smoothed = Number(store.view.smooth) > 0;
    const rows = hits.map(({line, index, distance}) => {
      const {steps, walls, series} = /** @type {any} */ (line);
      const drawn = (line.smooth || line.ys)[index];
      return {
        colour: line.colour,
        cells: [line.name, ...(smoothed ? [short(drawn)] : []), short(line.ys[index], 7), whole(steps[index]),
          moment(walls[index]), duration(walls[index] - series.first_wall)],
        near: distance,
        order: Number.isFinite(drawn) ? drawn : -Infinity,
      };
    });
    showTip(rows, ['run', ...(smoothed ? ['smoothed'] : []), 'value', 'step', 'time', 'since'], event);
  }

  save() {
    const [kind, id] = this.menu.value.split(' ');
    this.menu.value = '';
    if (kind === 'png') {
      const out = document.createElement('canvas');
      out.width = this.chart.canvas.width;
      out.height = this.chart.canvas.height;
      const g = /** @type {CanvasRenderingContext2D} */ (out.getContext('2d'));
      g.fillStyle = getComputedStyle(this.node).backgroundColor;
      g.fillRect(0, 0, out.width, out.height);
      g.drawImage(this.chart.canvas, 0, 0);
      out.toBlob(blob => blob && download(blob, `${this.tag.replace(/[^\w-]+/g, '_')}.png`));
    } else if (kind) {
      location.href = `/api/export?series=${id}&format=${kind}`;
    }
  }
}

/** @returns {import('./cards.js').Group[]} */
function plan() {
  const tags = store.byTag(['scalars']);
  const pins = store.list('pin').filter(tag => tags.has(tag));
  /** @type {Map<string, import('./cards.js').Group>} */
  const groups = new Map();
  if (pins.length > 0) {
    groups.set(' pinned', {group: 'Pinned', cards: pins.map(tag => ({key: `pin ${tag}`, series: tags.get(tag) || []}))});
  }
  for (const [tag, series] of tags) {
    const name = prefix(tag);
    const group = groups.get(name) || {group: name, cards: []};
    groups.set(name, group);
    group.cards.push({key: `tag ${tag}`, series});
  }
  return [...groups.values()];
}

/** @param {string} name @param {string} text @param {[string, string][]} values */
function choice(name, text, values) {
  const select = el('select', {onchange: () => store.choose({[name]: select.value})},
    ...values.map(([value, label]) => el('option', {value, text: label})));
  select.value = store.view[name];
  return el('label', {}, text, select);
}

/** @param {string} name @param {string} text */
function flag(name, text) {
  const box = el('input', {type: 'checkbox', onchange: () => store.choose({[name]: box.checked ? '1' : name === 'clip' ? '0' : ''})});
  box.checked = store.view[name] === '1';
  return el('label', {}, box, text);
}

function toolbar() {
  const output = el('output', {text: store.view.smooth});
  const range = el('input', {type: 'range', min: '0', max: '0.999', step: '0.001', 'aria-label': 'Smoothing'});
  range.value = store.view.smooth;
  range.addEventListener('input', () => {
    output.textContent = range.value;
    store.choose({smooth: range.value});
  });
  return el('div', {class: 'toolbar'}, tagFilter(), el('label', {}, 'Smoothing', range, output),
    choice('x', 'X axis', [['step', 'Step'], ['relative', 'Relative'], ['wall', 'Wall time']]),
    choice('y', 'Y axis', [['', 'Linear'], ['log', 'Logarithmic']]),
    flag('clip', 'Ignore outliers'), flag('share', 'Zoom all together'));
}

export const scalars = {
  name: 'scalars',
  title: 'Time series',
  plugins: ['scalars'],
  /** @param {HTMLElement} main */
  mount(main) {
    const box = el('div');
    main.append(toolbar(), box);
    const list = new CardList(box, {
      plan,
      make: (key, series) => new ScalarCard(series[0].tag, key),
      empty: () => emptyTab('scalars', HOW),
    });
    return {update: (/** @type {any} */ change) => list.update(change), destroy: () => list.destroy()};
  },
};
