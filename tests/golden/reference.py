"""What reports must say, computed in the plainest way from lists of samples."""

from collections import defaultdict


def basename(path):
    return path.rsplit("/", 1)[-1]


class Condition:
    """(field, operator, value) as in parca.query.v1alpha1.FilterCriteria."""

    TEXT = ["function_name", "system_name", "binary", "filename"]
    OPERATORS = ["equal", "not_equal", "contains", "not_contains", "starts_with", "not_starts_with"]

    def __init__(self, field, operator, value):
        self.field, self.operator, self.value = field, operator, value
        self.negative = "not_" in operator

    def applies(self, frame):
        if self.field == "address":
            return True
        if self.field == "binary":
            return frame.binary != ""
        return frame.function != ""

    def holds(self, frame):
        have = {
            "function_name": frame.function,
            "system_name": frame.function,
            "binary": basename(frame.binary),
            "filename": frame.file,
            "address": frame.address,
            "line_number": frame.line,
        }[self.field]
        want = self.value
        if isinstance(want, str):
            have, want = lower(have), lower(want)
        plain = self.operator.replace("not_", "")
        found = {
            "equal": lambda: have == want,
            "contains": lambda: want in have,
            "starts_with": lambda: have.startswith(want),
        }[plain]()
        return found != self.negative


def lower(text):
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in text)


def stack_passes(frames, conditions):
    if not frames:
        return True
    named = [c for c in conditions if c.field == "function_name"]
    for c in named or conditions:
        matches = [c.holds(f) for f in frames if c.applies(f)]
        if c.negative and not all(matches):
            return False
        if not c.negative and not any(matches):
            return False
    return True


def frame_stays(frame, conditions):
    """A frame without a binary has one of the name ""."""
    return all(c.holds(frame) or (c.field != "binary" and not c.applies(frame)) for c in conditions)


def cut(frames, function, invert):
    """Below the innermost, or above the outermost, frame whose name contains that."""
    at = [i for i, f in enumerate(frames) if lower(function) in lower(f.function)]
    if not at:
        return None
    return frames[: at[0] + 1] if invert else frames[at[-1] :]


def name(frame):
    return frame.function or (frame.binary, frame.address)


class Report:
    """samples: [(frames root first, value, diff)]."""

    def __init__(self, samples, filters=(), sandwich="", invert=False):
        self.total = self.filtered = 0
        self.paths = defaultdict(lambda: [0, 0])
        for frames, value, diff in samples:
            kept = self.keep(frames, filters, sandwich, invert)
            if kept is None:
                self.filtered += value
                continue
            self.total += value
            path = tuple(name(f) for f in (reversed(kept) if invert else kept))
            self.paths[path][0] += value
            self.paths[path][1] += diff

    @staticmethod
    def keep(frames, filters, sandwich, invert):
        for kind, conditions in filters:
            if kind == "stack" and not stack_passes(frames, conditions):
                return None
        if sandwich:
            frames = cut(frames, sandwich, invert)
            if frames is None:
                return None
        for kind, conditions in filters:
            if kind == "frame":
                frames = [f for f in frames if frame_stays(f, conditions)]
        return frames

    def flame(self):
        """{path: (cumulative, flat, diff)} of calls whose cumulative is not 0."""
        out = defaultdict(lambda: [0, 0, 0])
        for path, (value, diff) in self.paths.items():
            for i in range(1, len(path) + 1):
                out[path[:i]][0] += value
                out[path[:i]][2] += diff
            if path:
                out[path][1] += value
        return {path: tuple(v) for path, v in out.items() if v[0] > 0}

    def table(self):
        """{function: (cumulative, flat, cumulative diff, flat diff)}, a function once in a stack."""
        out = defaultdict(lambda: [0, 0, 0, 0])
        for path, (value, diff) in self.paths.items():
            for function in set(path):
                out[function][0] += value
                out[function][2] += diff
            if path:
                out[path[-1]][1] += value
                out[path[-1]][3] += diff
        return {function: tuple(v) for function, v in out.items()}

    def edges(self):
        out = set()
        for path in self.paths:
            out.update(zip(path, path[1:]))
        return out
