// A chart of samples over time. The figures of the last sample stand in its legend, as text.

import { html, useEffect, useRef } from '../kit.js';
import uPlot from '../../vendor/uplot.js';

/** The colour of a variable in the present theme, as the canvas needs it. */
function colourIn(box) {
  return (name) => {
    box.style.color = `var(${name})`;
    return getComputedStyle(box).color;
  };
}
const HEIGHT = 150;

const clock = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 8);

function options(series, box, write) {
  const colour = colourIn(box);
  const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { x: { range: (_, low, high) => (high > low ? [low, high] : [Date.now() / 1000 - 60, Date.now() / 1000]) }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high * 1.1)] } },
    axes: [{ ...axis, size: 26, space: 70, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 52, values: (_, ticks) => ticks.map(write) }],
    series: [{}, ...series.map((one, at) => ({
      stroke: colour(`--series-${one.colour ?? at + 1}`), width: 1.5, points: { show: false }, dash: one.dash,
    }))],
  };
}

/** `series` are `{name, colour?, dash?}`, `data` their values beside `times` in ms, `write` a value as text. */
export function Chart({ title, series, times, data, write }) {
  const box = useRef(null);
  const plot = useRef(null);
  const table = [times.map((ms) => ms / 1000), ...data];
  const latest = useRef(table);
  latest.current = table;
  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(series, box.current, write), latest.current, box.current);
    };
    draw();
    const sized = new ResizeObserver(() => plot.current.setSize({ width: box.current.clientWidth, height: HEIGHT }));
    sized.observe(box.current);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', draw);
    return () => {
      sized.disconnect();
      themed.disconnect();
      system.removeEventListener('change', draw);
      plot.current.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(latest.current), [times.at(-1), times.length]);
  const last = (at) => (data[at]?.length ? write(data[at].at(-1)) : '–');
  return html`<figure class="chart">
    <figcaption><span class="chart-title">${title}</span>
      <ul class="legend">${series.map((one, at) => html`<li>
        <svg class="swatch" width="14" height="8" aria-hidden="true"><line x1="0" y1="4" x2="14" y2="4" class=${`series-${one.colour ?? at + 1}`} stroke-dasharray=${one.dash?.join(' ')} /></svg>
        ${one.name} <b>${last(at)}</b></li>`)}</ul>
    </figcaption>
    <div class="plot" ref=${box} aria-hidden="true"></div>
  </figure>`;
}
