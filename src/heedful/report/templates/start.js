/* What happens when the page opens: the theme, printing, the instances. */

const root = document.documentElement;
const themeButton = document.querySelector("[data-theme-button]");
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => themeButton.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);

const remembered = (value) => {
  try { // a browser may refuse storage to a page opened from disk
    if (value) localStorage.setItem("heedful-theme", value);
    return localStorage.getItem("heedful-theme");
  } catch { return null; }
};

if (["dark", "light"].includes(remembered())) root.dataset.theme = remembered();
nameTheme();
themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  remembered(root.dataset.theme);
  nameTheme();
});

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
addEventListener("keydown", (event) => event.key === "Escape" && hideNumbers(document));

document.body.append(tooltip);
const data = document.getElementById("instances-data");
if (data) showInstances(JSON.parse(data.textContent), document.getElementById("instances"));
