// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import "./style/base.css";
import "./style/controls.css";
import "./style/menus.css";
import "./style/panels.css";
import "./style/table.css";
import "./style/compare.css";
import "./style/pages.css";
import "./style/small.css";
import { App } from "./view/App.tsx";

render(<App />, document.getElementById("app")!);
