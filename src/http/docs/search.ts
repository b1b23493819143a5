/**
 * The search of the reference: it hides the routes, schemas and guides that do not contain what is typed. The page's policy lets this
 * script alone run, by its hash; it makes no element and loads nothing.
 */
export const SEARCH = `
const box = document.getElementById("search");
const found = document.getElementById("found");
const parts = [...document.querySelectorAll(".route, .schema, .guide")].map((part) => ({ part, text: part.textContent.toLowerCase() }));
const lines = [...document.querySelectorAll("nav li")].map((line) => {
  const target = document.getElementById(line.querySelector("a").getAttribute("href").slice(1));
  return { line, part: target };
});
const heads = [...document.querySelectorAll("main > h2, nav > h2")];
function membersOf(head) {
  const members = [];
  for (let next = head.nextElementSibling; next !== null && next.tagName !== "H2"; next = next.nextElementSibling) {
    members.push(...(next.tagName === "UL" && head.closest("nav") !== null ? next.children : [next]));
  }
  return members;
}
function search() {
  const words = box.value.toLowerCase().split(/\\s+/).filter((word) => word !== "");
  let count = 0;
  for (const { part, text } of parts) {
    part.hidden = !words.every((word) => text.includes(word));
    if (!part.hidden) count += 1;
  }
  for (const { line, part } of lines) line.hidden = part !== null && part.hidden;
  for (const head of heads) head.hidden = membersOf(head).every((member) => member.hidden);
  found.textContent = words.length === 0 ? "" : count === 0 ? "Nothing has all of these words." : count + " found";
}
function first() {
  return parts.find(({ part }) => !part.hidden);
}
box.addEventListener("input", search);
box.addEventListener("keydown", (event) => {
  const part = first();
  if (event.key === "Enter" && box.value !== "" && part !== undefined) location.hash = part.part.id;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === box) return;
  event.preventDefault();
  box.focus();
});
box.value = new URLSearchParams(location.search).get("q") ?? "";
search();
`;
