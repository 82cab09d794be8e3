// A slider over every step of a series: its places are asked for once and again when it grows.
import {ask} from './api.js';
import {el} from './dom.js';
import {moment, numberOf, whole} from './format.js';

export class Stepper {
  /** @param {(place: {step: number, wall: number, at: string}) => Promise<void>} show called with what is chosen */
  constructor(show) {
    this.showPlace = show;
    /** @type {{step: number, wall: number, at: string}[]} */
    this.places = [];
    this.chosen = -1;
    this.newest = true;  // stays with the last step as others come
    this.busy = false;
    this.range = el('input', {type: 'range', min: '0', step: '1', 'aria-label': 'Step', oninput: () => this.choose(Number(this.range.value))});
    this.label = el('span');
    this.node = el('div', {class: 'slider'}, this.range, this.label);
  }

  /** @param {number} series */
  async load(series) {
    /** @type {{step: number, wall: number, at: string}[]} */
    const places = [];
    for (let begin = 0, count = 1; begin < count; begin = places.length) {
      const answer = await ask('/api/places', {series, begin});
      count = answer.count;
      if (answer.at.length === 0) break;
      answer.at.forEach((/** @type {string} */ at, /** @type {number} */ i) =>
        places.push({step: answer.steps[i], wall: numberOf(answer.walls[i]), at}));
    }
    this.places = places;
    this.range.max = String(Math.max(0, places.length - 1));
    this.range.disabled = places.length < 2;
    const last = places.length - 1;
    await this.choose(this.newest || this.chosen > last ? last : this.chosen);
  }

  /** @param {number} i */
  async choose(i) {
    if (i < 0 || i >= this.places.length) return;
    this.chosen = i;
    this.newest = i === this.places.length - 1;
    this.range.value = String(i);
    const place = this.places[i];
    this.label.textContent = `step ${whole(place.step)} (${i + 1} of ${whole(this.places.length)})`;
    this.label.title = moment(place.wall);
    if (this.busy) return;  // while the slider moves, what is passed over is left out
    this.busy = true;
    try {
      await this.showPlace(place);
    } finally {
      this.busy = false;
    }
    if (this.chosen !== i && this.places[this.chosen] !== place) await this.choose(this.chosen);
  }

  /**
   * The nearest to a step.
   * @param {number} step
   */
  chooseStep(step) {
    let best = 0;
    this.places.forEach((place, i) => {
      if (Math.abs(place.step - step) <= Math.abs(this.places[best].step - step)) best = i;
    });
    return this.choose(best);
  }
}
