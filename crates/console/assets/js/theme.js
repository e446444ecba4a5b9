// Sets the chosen theme before the first paint. A classic script, so that it runs before the page shows.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('sluice-theme');
  } catch {
    // Storage is switched off: the system's theme counts.
  }
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
})();
