// Buttons that copy the text before them. Pages work without this file.
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
