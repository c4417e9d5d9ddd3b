//! What a module says of its ids beside defining them: names and decorations.

use hashbrown::HashMap;
use rspirv::spirv::{Decoration, Op};
use smallvec::SmallVec;

use crate::error::Result;
use crate::reader::{Id, Instruction};

/// A decoration with its operands.
type Decorated = (u32, SmallVec<[u32; 1]>);

/// The decorations of an id or member. Most have one or two.
type Own = SmallVec<[Decorated; 2]>;

/// Names and decorations by id, and by member of a structure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decorations {
    names: HashMap<Id, String>,
    member_names: HashMap<(Id, u32), String>,
    of: HashMap<Id, Own>,
    of_members: HashMap<(Id, u32), Own>,
}

impl Decorations {
    /// Takes in an instruction of the module's sections for names and annotations.
    pub(crate) fn take(&mut self, inst: Instruction<'_>) -> Result<()> {
        match inst.op {
            Op::Name => {
                let (name, _) = inst.string(1)?;
                if !name.is_empty() {
                    self.names.insert(inst.word(0)?, name);
                }
            }
            Op::MemberName => {
                let (name, _) = inst.string(2)?;
                self.member_names.insert((inst.word(0)?, inst.word(1)?), name);
            }
            Op::Decorate | Op::DecorateId | Op::DecorateString => {
                // What is imported may have no other name.
                if inst.word(1)? == Decoration::LinkageAttributes as u32 {
                    let (name, _) = inst.string(2)?;
                    self.names.entry(inst.word(0)?).or_insert(name);
                }
                let decorated = (inst.word(1)?, inst.rest(2).into());
                self.of.entry(inst.word(0)?).or_default().push(decorated);
            }
            Op::MemberDecorate | Op::MemberDecorateString => {
                let decorated = (inst.word(2)?, inst.rest(3).into());
                let member = (inst.word(0)?, inst.word(1)?);
                self.of_members.entry(member).or_default().push(decorated);
            }
            Op::GroupDecorate => {
                let group = self.of.get(&inst.word(0)?).cloned().unwrap_or_default();
                for &target in inst.rest(1) {
                    self.of.entry(target).or_default().extend(group.iter().cloned());
                }
            }
            Op::GroupMemberDecorate => {
                let group = self.of.get(&inst.word(0)?).cloned().unwrap_or_default();
                for &[target, member] in inst.rest(1).as_chunks::<2>().0 {
                    let decorated = self.of_members.entry((target, member)).or_default();
                    decorated.extend(group.iter().cloned());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The name of an id.
    pub(crate) fn name(&self, id: Id) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    /// The name of a member of a structure.
    pub(crate) fn member_name(&self, of: Id, member: u32) -> Option<&str> {
        let name = self.member_names.get(&(of, member)).map(String::as_str);
        name.filter(|name| !name.is_empty())
    }

    /// The operands of a decoration, if an id has it.
    pub(crate) fn get(&self, id: Id, decoration: Decoration) -> Option<&[u32]> {
        found(self.of.get(&id)?, decoration)
    }

    pub(crate) fn has(&self, id: Id, decoration: Decoration) -> bool {
        self.get(id, decoration).is_some()
    }

    /// The first operand of a decoration, if an id has it.
    pub(crate) fn number(&self, id: Id, decoration: Decoration) -> Option<u32> {
        self.get(id, decoration)?.first().copied()
    }

    /// The operands of a decoration, if a member of a structure has it.
    pub(crate) fn of_member(&self, of: Id, member: u32, decoration: Decoration) -> Option<&[u32]> {
        found(self.of_members.get(&(of, member))?, decoration)
    }

    /// The first operand of a decoration, if a member of a structure has it.
    pub(crate) fn member_number(&self, of: Id, member: u32, what: Decoration) -> Option<u32> {
        self.of_member(of, member, what)?.first().copied()
    }

    /// What a variable or constant stands for.
    pub(crate) fn builtin(&self, id: Id) -> Option<u32> {
        self.number(id, Decoration::BuiltIn)
    }

    /// Whether a parameter has an attribute.
    pub(crate) fn has_attribute(&self, id: Id, attribute: u32) -> bool {
        let decorated = self.of.get(&id).map(SmallVec::as_slice).unwrap_or_default();
        decorated.iter().any(|(decoration, operands)| {
            *decoration == Decoration::FuncParamAttr as u32 && operands.first() == Some(&attribute)
        })
    }
}

fn found(decorated: &[Decorated], wanted: Decoration) -> Option<&[u32]> {
    let found = decorated.iter().find(|(decoration, _)| *decoration == wanted as u32)?;
    Some(&found.1)
}
