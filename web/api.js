// What the page asks of its server.

/** @param {string} path @param {Record<string, any>} [parameters] @returns {Promise<any>} */
export async function ask(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value));
  const text = query.toString();
  const response = await fetch(text ? `${path}?${text}` : path);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || `the server says ${response.status}`);
  return answer;
}

/**
 * The address of an image or a clip.
 * @param {number} series
 * @param {string} at
 * @param {number} number
 */
export function mediaUrl(series, at, number) { return `/api/media?series=${series}&at=${at}&number=${number}`; }

/** Calls `news` when files have changed, `lost(true)` when the server is gone and `lost(false)` when it is back.
 * @param {() => void} news @param {(gone: boolean) => void} lost */
export function follow(news, lost) {
  /** @type {EventSource | null} */
  let source = null;
  const listen = () => {
    source = new EventSource('/api/news');
    source.onmessage = () => news();
    source.onopen = () => lost(false);
    source.onerror = () => lost(true);  // the browser tries again by itself
  };
  // A browser keeps six connections to one server: pages that nobody sees take none, or the seventh would wait.
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (!source) {
      listen();
      news();
    }
  });
  if (!document.hidden) listen();
}
