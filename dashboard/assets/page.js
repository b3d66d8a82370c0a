// Buttons that copy the text before them, and streams of pages that failed. Pages work without this file.
document.documentElement.classList.add("js");
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const text = button.previousElementSibling.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // No permission: the text is selected instead.
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Selected";
  }
});

// An answer that is no stream of events keeps the contents of the page. The stream is asked for again, later each time.
const isStream = (element) => element?.hasAttribute("hx-sse:connect");
let wait_ms = 500;
document.addEventListener("htmx:before:response", (event) => {
  if (isStream(event.detail.ctx.sourceElement)) event.preventDefault();
});
document.addEventListener("htmx:sse:after:connection", () => (wait_ms = 500));
document.addEventListener("htmx:finally:request", (event) => {
  const element = event.detail.ctx.sourceElement;
  if (!isStream(element) || !element.isConnected) return;
  setTimeout(() => htmx.trigger(element, "again"), wait_ms);
  wait_ms = Math.min(2 * wait_ms, 60_000);
});
