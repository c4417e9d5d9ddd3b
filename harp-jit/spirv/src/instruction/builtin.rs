//! Built-in values: where a work-item is in the grid, in its work-group and in its warp, which is a subgroup.

use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder};
use harp_isa::WordSize;
use harp_isa::abi::{ArgumentBlock, LaunchGrid, LaunchOffset};
use rspirv::spirv::BuiltIn;

use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::module::Addressing;
use crate::prologue::{GLOBAL_ID, GROUP_ID, Item, LOCAL_ID, LOCAL_SIZE};
use crate::values::{BuiltinPlace, Parts, Val};

/// Computes the offset of a word of the argument block for a dimension.
type HeaderOffset = fn(u8, WordSize) -> u32;

impl Translator<'_, '_, '_> {
    /// Loads a built-in value or its component.
    pub(crate) fn load_builtin(&mut self, place: BuiltinPlace) -> Result<Val> {
        let BuiltinPlace { ty, builtin, component } = place;
        let components = match component {
            Some(component) => component..component + 1,
            None => 0..self.module.types.components(ty)?.1,
        };
        let mut parts = Parts::new();
        for component in components {
            parts.push(self.builtin_component(ty, builtin, component)?);
        }
        Ok(Val::new(ty, parts))
    }

    /// A component of a built-in value whose type is `ty`, or whose components are.
    pub(crate) fn builtin_component(
        &mut self,
        ty: u32,
        builtin: u32,
        component: u32,
    ) -> Result<ir::Value> {
        let (_, scalar) = self.vector_type(ty, super::Of::Int)?;
        let unsupported = || SpirvErrorKind::unsupported(format!("the built-in value {builtin}"));
        let builtin = BuiltIn::from_u32(builtin).ok_or_else(unsupported)?;
        let dim = |names: [&'static str; 3]| names.get(component as usize).copied();
        let is_shader = self.module.addressing == Addressing::Logical;
        let value = match builtin {
            BuiltIn::GlobalInvocationId => {
                let position = self.position(dim(GLOBAL_ID))?;
                match self.launch_offset(component) {
                    Some(offset) => self.at_start(|at| at.ins().iadd(position, offset)),
                    None => position,
                }
            }
            BuiltIn::LocalInvocationId => self.position(dim(LOCAL_ID))?,
            BuiltIn::WorkgroupId => self.position(dim(GROUP_ID))?,
            BuiltIn::WorkgroupSize if is_shader => {
                self.group_header(ArgumentBlock::group_extent, component)?
            }
            BuiltIn::WorkgroupSize => self.position(dim(LOCAL_SIZE))?,
            BuiltIn::EnqueuedWorkgroupSize => {
                self.group_header(ArgumentBlock::group_extent, component)?
            }
            BuiltIn::NumWorkgroups => self.group_header(ArgumentBlock::group_count, component)?,
            BuiltIn::GlobalSize => self.header(ArgumentBlock::grid_extent, component)?,
            BuiltIn::GlobalOffset => match self.launch_offset(component) {
                Some(offset) => offset,
                None => self.b.ins().iconst(self.unit.word, 0),
            },
            BuiltIn::WorkDim => {
                let dimensions = LaunchGrid::Dimensions.offset(self.unit.arch.word());
                let item = Item::LaunchWord(LaunchGrid::SYMBOL, dimensions);
                self.prologue.item(self.b.func, item)
            }
            BuiltIn::GlobalLinearId => self.linear_id()?,
            BuiltIn::LocalInvocationIndex => self.prologue_word("harp_local_index"),
            BuiltIn::SubgroupLocalInvocationId => self.prologue_word("harp_lane_id"),
            BuiltIn::SubgroupMaxSize => self.prologue_word("harp_lane_count"),
            BuiltIn::SubgroupSize if is_shader => self.prologue_word("harp_lane_count"),
            BuiltIn::SubgroupSize => self.subgroup_size(),
            BuiltIn::SubgroupId => {
                let index = self.prologue_word("harp_local_index");
                let lanes = self.prologue_word("harp_lane_count");
                self.at_start(|at| at.ins().udiv(index, lanes))
            }
            BuiltIn::NumSubgroups | BuiltIn::NumEnqueuedSubgroups => {
                let items = self.group_items();
                let lanes = self.prologue_word("harp_lane_count");
                self.at_start(|at| {
                    let last = at.ins().iadd_imm_s(items, -1);
                    let full = at.ins().udiv(last, lanes);
                    at.ins().iadd_imm_s(full, 1)
                })
            }
            BuiltIn::SubgroupEqMask
            | BuiltIn::SubgroupGeMask
            | BuiltIn::SubgroupGtMask
            | BuiltIn::SubgroupLeMask
            | BuiltIn::SubgroupLtMask => return Ok(self.lane_mask(builtin, component)),
            other => {
                return Err(SpirvErrorKind::unsupported(format!("the built-in value {other:?}")));
            }
        };
        Ok(self.resized(value, scalar, false))
    }

    /// What OpenCL C's functions of a dimension give where there is no such dimension (OpenCL C specification, section
    /// 6.15.1), if this is the built-in vector of one of them. There any number may be asked for, while no vector of
    /// SPIR-V has such a component; translators do not tell them apart.
    pub(super) fn beyond_dimensions(&mut self, vector: BuiltinPlace) -> Result<Option<ir::Value>> {
        let beyond = match BuiltIn::from_u32(vector.builtin) {
            _ if self.module.addressing == Addressing::Logical => return Ok(None),
            Some(
                BuiltIn::GlobalSize
                | BuiltIn::WorkgroupSize
                | BuiltIn::EnqueuedWorkgroupSize
                | BuiltIn::NumWorkgroups,
            ) => 1,
            Some(
                BuiltIn::GlobalInvocationId
                | BuiltIn::LocalInvocationId
                | BuiltIn::WorkgroupId
                | BuiltIn::GlobalOffset,
            ) => 0,
            _ => return Ok(None),
        };
        let (_, scalar) = self.vector_type(vector.ty, super::Of::Int)?;
        Ok(Some(self.bits(scalar, beyond)))
    }

    /// Builds a value where the function begins.
    pub(crate) fn at_start(
        &mut self,
        build: impl FnOnce(&mut FuncCursor<'_>) -> ir::Value,
    ) -> ir::Value {
        self.prologue.insert(self.b.func, build)
    }

    fn position(&mut self, name: Option<&'static str>) -> Result<ir::Value> {
        let name =
            name.ok_or_else(|| SpirvErrorKind::malformed("a built-in value of 4 dimensions"))?;
        Ok(self.prologue_word(name))
    }

    /// What the launch adds to positions in a dimension, if the kernel is one for such launches.
    fn launch_offset(&mut self, dim: u32) -> Option<ir::Value> {
        let words = LaunchOffset::ALL.get(dim as usize).filter(|_| self.module.takes_offset)?;
        let item = Item::LaunchWord(LaunchOffset::SYMBOL, words.offset(self.unit.arch.word()));
        Some(self.prologue.item(self.b.func, item))
    }

    fn header(&mut self, offset: HeaderOffset, dim: u32) -> Result<ir::Value> {
        if dim >= 3 {
            return Err(SpirvErrorKind::malformed("a built-in value of 4 dimensions"));
        }
        let offset = offset(dim as u8, self.unit.arch.word());
        Ok(self.prologue.item(self.b.func, Item::Header(offset)))
    }

    fn group_header(&mut self, offset: HeaderOffset, dim: u32) -> Result<ir::Value> {
        self.unit.uses_groups = true;
        self.header(offset, dim)
    }

    fn linear_id(&mut self) -> Result<ir::Value> {
        let [x, y, z] = GLOBAL_ID.map(|name| self.prologue_word(name));
        let columns = self.header(ArgumentBlock::grid_extent, 0)?;
        let rows = self.header(ArgumentBlock::grid_extent, 1)?;
        Ok(self.at_start(|at| harp_jit::Printer::work_item(at, [x, y, z], [columns, rows])))
    }

    /// The work-items of the work-group.
    pub(crate) fn group_items(&mut self) -> ir::Value {
        let [x, y, z] = LOCAL_SIZE.map(|name| self.prologue_word(name));
        self.at_start(|at| {
            let layer = at.ins().imul(x, y);
            at.ins().imul(layer, z)
        })
    }

    /// The work-items of the subgroup: the last one of a work-group may have fewer than a warp has lanes.
    fn subgroup_size(&mut self) -> ir::Value {
        let (items, index) = (self.group_items(), self.prologue_word("harp_local_index"));
        let (lane, lanes) =
            (self.prologue_word("harp_lane_id"), self.prologue_word("harp_lane_count"));
        self.at_start(|at| {
            let first = at.ins().isub(index, lane);
            let rest = at.ins().isub(items, first);
            at.ins().umin(rest, lanes)
        })
    }

    /// Lanes that compare to the own one in some way: a component of 32 bits of the set.
    pub(super) fn lane_mask(&mut self, builtin: BuiltIn, component: u32) -> ir::Value {
        let lane = self.prologue_word("harp_lane_id");
        let lane = self.resized(lane, ir::types::I32, false);
        let first = i64::from(component) * 32;
        let [zero, all] = [0, -1].map(|bits| self.b.ins().iconst(ir::types::I32, bits));
        // The bits of a component that are below lane `end`.
        let below = |t: &mut Self, end: ir::Value| {
            let past = t.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, end, first + 32);
            let before = t.b.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, end, first);
            let count = t.b.ins().iadd_imm_s(end, -first);
            let one = t.b.ins().iconst(ir::types::I32, 1);
            let bit = t.b.ins().ishl(one, count);
            let some = t.b.ins().iadd_imm_s(bit, -1);
            let some = t.b.ins().select(before, zero, some);
            t.b.ins().select(past, all, some)
        };
        let next = self.b.ins().iadd_imm_s(lane, 1);
        let lanes = self.prologue_word("harp_lane_count");
        let lanes = self.resized(lanes, ir::types::I32, false);
        let (less, up_to) = (below(self, lane), below(self, next));
        match builtin {
            BuiltIn::SubgroupLtMask => less,
            BuiltIn::SubgroupLeMask => up_to,
            BuiltIn::SubgroupEqMask => self.b.ins().bxor(less, up_to),
            _ => {
                let without = if builtin == BuiltIn::SubgroupGeMask { less } else { up_to };
                let all = below(self, lanes);
                self.b.ins().bxor(all, without)
            }
        }
    }
}
