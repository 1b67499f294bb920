"use strict";
// Apply the saved color theme before the first paint.

const THEMES = ["auto", "light", "dark"];
function storedTheme(theme) {
  try {
    if (theme) localStorage.setItem("tertium-theme", theme);
    else return localStorage.getItem("tertium-theme");
  } catch {
    /* pages opened from disk may have no storage */
  }
  return null;
}
function setTheme(theme) {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
}
let theme = THEMES.includes(storedTheme()) ? storedTheme() : "auto";
setTheme(theme);
