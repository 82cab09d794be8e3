// The tab of precision and recall: a card for each tag, a curve for each run, with a slider over the steps.
import {ask} from './api.js';
import {CardList, emptyTab, tagFilter} from './cards.js';
import {LineChart} from './chart.js';
import {el} from './dom.js';
import {numberOf, short, whole} from './format.js';
import {Stepper} from './stepper.js';
import {store} from './store.js';
import {showTip} from './tip.js';

/** @typedef {import('./store.js').Series} Series */

const PRECISION = 4, RECALL = 5;  // rows of the tensor

class CurveCard {
  /** @param {string} tag */
  constructor(tag) {
    /** @type {Series[]} */
    this.series = [];
    /** @type {Map<number, any>} */
    this.lines = new Map();
    /** @type {Map<number, Stepper>} */
    this.steppers = new Map();
    this.sliders = el('div');
    this.box = el('div', {class: 'chart'});
    this.node = el('article', {class: 'card'}, el('div', {class: 'title'}, el('h3', {text: tag, title: tag})), this.box, this.sliders);
    this.chart = new LineChart(this.box, {tip: (hits, x, event) => showTip(hits.map(({line, index, distance}) => ({
      colour: line.colour, near: distance, order: line.ys[index],
      cells: [line.name, short(line.xs[index]), short(line.ys[index]), short(/** @type {any} */ (line).thresholds[index])],
    })), ['run', 'recall', 'precision', 'threshold'], event)});
  }

  destroy() { this.chart.destroy(); }

  /** @param {Series[]} series */
  show(series) {
    this.series = series;
    const old = this.steppers;
    this.steppers = new Map(series.map(one => [one.id, old.get(one.id) || new Stepper(place => this.showPlace(one.id, place))]));
    this.sliders.replaceChildren(...series.map(one => {
      const mark = el('span', {class: 'swatch', title: one.run});
      mark.style.background = store.colourOf(one.run);
      return el('div', {class: 'run'}, mark, /** @type {Stepper} */ (this.steppers.get(one.id)).node);
    }));
  }

  async load() { await Promise.all([...this.steppers].map(([id, stepper]) => stepper.load(id))); }

  /** @param {number} id @param {{at: string}} place */
  async showPlace(id, place) {
    const value = (await ask('/api/values', {series: id, at: place.at})).values[0];
    if (value.error) throw new Error(value.error);
    const n = value.shape[1];
    const row = (/** @type {number} */ r) => Float64Array.from(value.values.slice(r * n, (r + 1) * n), numberOf);
    this.lines.set(id, {xs: row(RECALL), ys: row(PRECISION), smooth: null,
      thresholds: Float64Array.from({length: n}, (_, i) => n > 1 ? i / (n - 1) : 0)});
    this.redraw();
  }

  redraw() {
    const lines = this.series.filter(one => this.lines.has(one.id))
      .map(one => ({...this.lines.get(one.id), name: one.run, colour: store.colourOf(one.run)}));
    this.chart.set(lines, {xKind: 'plain', logY: false, clip: false});
  }
}

export const prCurves = {
  name: 'pr_curves',
  title: 'PR curves',
  plugins: ['pr_curves'],
  /** @param {HTMLElement} main */
  mount(main) {
    const box = el('div');
    main.append(el('div', {class: 'toolbar'}, tagFilter(), el('span', {class: 'note', text: 'Precision over recall'})), box);
    const list = new CardList(box, {
      plan: () => {
        const tags = [...store.byTag(['pr_curves'])];
        return tags.length === 0 ? [] : [{group: `${whole(tags.length)} curves`, cards: tags.map(([tag, series]) => ({key: tag, series}))}];
      },
      make: key => new CurveCard(key),
      empty: () => emptyTab('curves', 'summary::pr_curve("quality", labels, predictions, step);'),
    });
    return {update: (/** @type {any} */ change) => list.update(change), destroy: () => list.destroy()};
  },
};
