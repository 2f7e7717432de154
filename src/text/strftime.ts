const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = [
  ...["January", "February", "March", "April", "May", "June"],
  ...["July", "August", "September", "October", "November", "December"],
];

/**
 * Formats a local date as Python's `strftime` does in the C locale (English names), as far as chat templates
 * use it: %Y %y %m %d %e %B %b %A %a %H %I %M %S %p %j %-d %-m %-H %-I %%. Other directives stay as they are.
 */
export function strftime(date: Date, format: string): string {
  const hour12 = date.getHours() % 12 || 12;
  const dayOfYear = () =>
    Math.round(
      (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - Date.UTC(date.getFullYear(), 0, 0)) /
        864e5,
    );
  const directives: Record<string, () => string> = {
    "%Y": () => String(date.getFullYear()),
    "%y": () => pad(date.getFullYear() % 100),
    "%m": () => pad(date.getMonth() + 1),
    "%-m": () => String(date.getMonth() + 1),
    "%d": () => pad(date.getDate()),
    "%-d": () => String(date.getDate()),
    "%e": () => String(date.getDate()).padStart(2),
    "%B": () => months[date.getMonth()],
    "%b": () => months[date.getMonth()].slice(0, 3),
    "%A": () => days[date.getDay()],
    "%a": () => days[date.getDay()].slice(0, 3),
    "%H": () => pad(date.getHours()),
    "%-H": () => String(date.getHours()),
    "%I": () => pad(hour12),
    "%-I": () => String(hour12),
    "%M": () => pad(date.getMinutes()),
    "%S": () => pad(date.getSeconds()),
    "%p": () => (date.getHours() < 12 ? "AM" : "PM"),
    "%j": () => pad(dayOfYear(), 3),
    "%%": () => "%",
  };
  return format.replace(/%-?[A-Za-z%]/g, (directive) => directives[directive]?.() ?? directive);
}

function pad(value: number, width = 2): string {
  return String(value).padStart(width, "0");
}
